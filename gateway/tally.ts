import { Counter, type Registry } from 'prom-client';

/**
 * A counter with a first label of some hundred values and others of a few each. What is counted is one addition in an
 * array; labels are put together only when the counter is read.
 */
export class TallyTable {
  readonly #labelNames: readonly string[];
  readonly #axes: readonly (readonly string[])[];
  readonly #size: number;
  readonly #rows = new Map<string, Float64Array>();

  /** `axes` are the values of the labels behind the first one; a cell counts through them, the last one fastest. */
  constructor(labelNames: readonly string[], axes: readonly (readonly string[])[]) {
    this.#labelNames = labelNames;
    this.#axes = axes;
    this.#size = axes.reduce((size, axis) => size * axis.length, 1);
  }

  add(row: string, cell: number): void {
    let cells = this.#rows.get(row);
    if (cells === undefined) {
      cells = new Float64Array(this.#size);
      this.#rows.set(row, cells);
    }
    cells[cell] = (cells[cell] ?? 0) + 1;
  }

  /** Makes a counter of the table. What was counted since the last reading is moved over at each one. */
  expose(name: string, help: string, registers: readonly Registry[]): void {
    const move = (counter: Counter<string>): void => {
      for (const [row, cells] of this.#rows) {
        for (const [cell, count] of cells.entries()) {
          if (count === 0) continue;
          counter.inc(this.#labelsOf(row, cell), count);
          cells[cell] = 0;
        }
      }
    };
    new Counter({
      name,
      help,
      labelNames: this.#labelNames,
      registers: [...registers],
      collect(): void {
        move(this);
      },
    });
  }

  #labelsOf(row: string, cell: number): Record<string, string> {
    const labels: Record<string, string> = { [this.#labelNames[0] ?? '']: row };
    let rest = cell;
    for (let i = this.#axes.length - 1; i >= 0; i--) {
      const axis = this.#axes[i] ?? [];
      labels[this.#labelNames[i + 1] ?? ''] = axis[rest % axis.length] ?? '';
      rest = Math.floor(rest / axis.length);
    }
    return labels;
  }
}
