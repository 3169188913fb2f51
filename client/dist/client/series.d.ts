export * from '../series.js'
