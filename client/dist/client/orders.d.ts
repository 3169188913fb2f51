export * from '../types/orders/orders.js'
