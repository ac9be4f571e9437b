# The gateway alone: production files, an unprivileged user, and nothing that has to be written to outside /var/lib/toolgate.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# No install scripts: the compiler needs none, and what they would fetch is not wanted in an image.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY receipts ./receipts
COPY policy ./policy
COPY gateway ./gateway
RUN npm run -s build

FROM ${NODE_IMAGE} AS production
WORKDIR /production
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev && npm cache clean --force

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="toolgate" \
      org.opencontainers.image.description="An enforcement gateway for the tool calls of AI agents" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=production /production/node_modules ./node_modules
COPY --from=production /production/package.json ./package.json
COPY --from=build /build/dist ./dist
# The folder of a mounted volume takes its owner from here.
RUN install -d -o 10001 -g 10001 -m 0750 /var/lib/toolgate
USER 10001:10001
VOLUME ["/var/lib/toolgate"]
EXPOSE 8080
STOPSIGNAL SIGTERM
# Neither this nor the entry point needs a shell.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.TOOLGATE_HEALTH_URL ?? 'http://127.0.0.1:8080/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/gateway/cli/main.js"]
CMD ["serve", "-c", "/etc/toolgate/gateway.yaml", "--lame-duck", "5s"]
