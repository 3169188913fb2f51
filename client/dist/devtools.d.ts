export * from './types/devtools/devtools.js'
