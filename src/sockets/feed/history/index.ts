// Where a history ends among the messages of its stream.
export { pointOf, tailOf } from './points.ts'
export { type HistoryEnd, RecentMessages } from './recent-messages.ts'
