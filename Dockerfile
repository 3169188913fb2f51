# The base image. A build takes the newest one with this tag; a release names it by digest (deploy/base-image).
ARG NODE_IMAGE=node:24-slim

# The packages are the same for each platform, so one stage on the platform of the builder installs them for all.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS modules
WORKDIR /app
COPY package.json package-lock.json ./
# The optional dependencies are Node itself, for machines with an older version. No dependency needs a script to install.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund
# Code, data and licences are kept. Tests, source maps, types and documents are two thirds of what npm installs.
RUN find node_modules -type d \( -name test -o -name tests -o -name __tests__ -o -name benchmark -o -name benchmarks \
      -o -name example -o -name examples -o -name .github -o -name .bin \) -prune -exec rm -rf {} + \
 && find node_modules -type f ! \( -name '*.js' -o -name '*.cjs' -o -name '*.mjs' -o -name '*.json' -o -name '*.wasm' \
      -o -name '*.node' -o -iname 'licen[cs]e*' -o -iname 'notice*' \) -delete \
 && find node_modules -type d -empty -delete

FROM ${NODE_IMAGE}
# Names of peers are looked up by half of these threads, and one place is kept for each peer (docs/operating/install.md).
ENV UV_THREADPOOL_SIZE=16
# No module is a symbolic link. Looking for links at each of a thousand files would take a twentieth of a start.
ENV NODE_ENV=production NODE_PRESERVE_SYMLINKS=1
WORKDIR /app
COPY --chmod=444 package.json package-lock.json ./
COPY --from=modules /app/node_modules ./node_modules
# COPY gives the mode to the folders that it makes as well, and without 1 nobody could enter them.
COPY --chmod=555 src ./src
COPY --chmod=555 client/dist/client.js ./client/dist/client.js
COPY --chmod=555 client/dist/client ./client/dist/client
# For operators: docs/operating/runbook.md.
COPY --chmod=555 deploy/toolbox.sh ./deploy/toolbox.sh
# The user is numeric, so that Kubernetes can verify that it is not root.
RUN install -d -o 1000 -g 1000 compiled
USER 1000:1000
# Node caches compiled code here during the build, which halves the time of every start. Nothing is written later, so the
# container runs with a read-only root and without /tmp.
ENV NODE_COMPILE_CACHE=/app/compiled
# The options are those of CMD: the cache is not used with other ones.
RUN node --v8-pool-size=1 --no-memory-reducer --no-allocation-site-pretenuring --min-semi-space-size=16 --max-semi-space-size=32 --disable-sigusr1 src/main.ts --warm-up
# The repository and the commit that the image was built from (docs/operating/release.md).
ARG SOURCE=
ARG REVISION=unknown
LABEL org.opencontainers.image.title="trading-bff" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT"
# bff_build_info shows it.
ENV REVISION=${REVISION}
EXPOSE 3000 9464
# It asks where the ops listener is bound. The kernel takes 0.0.0.0 and :: for this machine.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "require('node:http').get({ host: process.env.OPS_HOST || process.env.HOST || '127.0.0.1', port: process.env.OPS_PORT || 9464, path: '/livez' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# Without npm, Node is PID 1 and handles SIGTERM. No --init is needed, since it has no children but its workers.
# --v8-pool-size=1: V8 has one thread of its own. By default it has four, which together take four fifths of a single processor
# while they collect garbage. With 0 it would count the processors of the machine, and not always see the limit of a container.
# --no-memory-reducer: V8 does not collect garbage because it is quiet, so the load that ends the quiet does not meet that.
# --no-allocation-site-pretenuring: V8 does not guess from the first requests which objects will live long. In one of twelve starts
# it guessed wrong, and kept two fifths of what every request made, for as long as the process lived.
# --min- and --max-semi-space-size (MiB): the young generation starts as large as under load, and may double. If it started
# smaller, a twelfth of a start would be garbage collection. If it could not grow, old objects would have to be collected more
# often, which delays the slowest requests; if it grew further, it would take up to 50 MiB more, and nothing would be faster.
# --disable-sigusr1: SIGUSR1 would open an inspector, which runs whatever code it is sent.
CMD ["node", "--v8-pool-size=1", "--no-memory-reducer", "--no-allocation-site-pretenuring", "--min-semi-space-size=16", "--max-semi-space-size=32", "--disable-sigusr1", "src/main.ts"]
