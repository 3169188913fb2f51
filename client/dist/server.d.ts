export * from './types/server/server.js'
