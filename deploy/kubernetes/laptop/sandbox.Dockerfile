# The sandbox and the demo page, which are never in the image of the server.
FROM node:24-slim
WORKDIR /sandbox
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund && npm cache clean --force
COPY sandbox ./sandbox
# The demo page has the devtools of the browser package in it.
COPY client/dist/devtools.js ./client/dist/devtools.js
# The pages of the provider are written with its function for HTML.
COPY src/http/html.ts ./src/http/html.ts
RUN node sandbox/build-page.ts sandbox/built-page
USER 1000:1000
EXPOSE 4000 4100
CMD ["node", "sandbox/serve.ts"]
