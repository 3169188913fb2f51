// What is written on a socket: requests, messages of upstream, answers and frames. It imports nothing of the rest of the feed.
export { AnswerFrame, type Recipient, alreadySubscribed, localAnswer, rateLimitError } from './answers.ts'
export { type UpstreamMessage, dissect } from './dissect.ts'
export { frameOf, messageBytes, standaloneConcat } from './frame-of.ts'
export { type FeedRequest, RequestReader, prefixOf } from './parse-request.ts'
export { type FrameSequence, WriteBatch } from './write-batch.ts'
