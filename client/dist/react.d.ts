export * from './types/react/react.js'
