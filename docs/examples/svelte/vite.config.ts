import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

const SERVER_PATHS = '^/(?:auth|api|ws|problems)/|^/(?:client(?:/[a-z]+)?\\.js|(?:openapi|asyncapi)\\.json)$'

export default defineConfig({
  plugins: [svelte()],
  server: { port: 5173, strictPort: true, proxy: { [SERVER_PATHS]: { target: 'http://localhost:3000', ws: true } } },
})
