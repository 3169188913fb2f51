export * from './types/core/client.js'
