export * from '../types/sessions/sessions.js'
