// Before the listener of MSW: the browser itself handles what leads to the server's pages.
addEventListener('fetch', (event) => event.request.mode === 'navigate' && event.stopImmediatePropagation())
importScripts('/mockServiceWorker.js')
