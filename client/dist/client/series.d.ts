export * from '../types/series/series.js'
