export * from './types/testing/testing.js'
