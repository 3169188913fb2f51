import { defineConfig } from 'vite'

/** Every path of the server, and no path of the page such as /authors. */
const SERVER_PATHS = '^/(?:auth|api|ws|problems)/|^/(?:client(?:/[a-z]+)?\\.js|(?:openapi|asyncapi)\\.json)$'

export default defineConfig({
  server: {
    port: 5173,
    strictPort: true,
    proxy: { [SERVER_PATHS]: { target: 'http://localhost:3000', ws: true } },
  },
})
