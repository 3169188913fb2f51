// Where a history is in its stream: which of the stream's messages follow it.
export { pointOf, tailOf } from './points.ts'
export { Position } from './position.ts'
export { RecentMessages } from './recent-messages.ts'
