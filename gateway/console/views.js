import { decidedView, oneView, waitingView } from './confirmations.js';
import { outcomesView } from './outcomes.js';
import { runsView } from './runs.js';

/** The view of a path, made by `make`; `link` is the entry of the menu that it belongs to. */
export function viewOf(path) {
  const one = /^\/console\/confirmations\/([^/]+)$/.exec(path);
  if (one !== null) return { link: '/console', make: (context) => oneView(context, decodeURIComponent(one[1])) };
  const link = path.endsWith('/') ? path.slice(0, -1) : path;
  return { link, make: VIEWS[link] ?? waitingView };
}

const VIEWS = {
  '/console': waitingView,
  '/console/decided': decidedView,
  '/console/outcomes': outcomesView,
  '/console/runs': runsView,
};
