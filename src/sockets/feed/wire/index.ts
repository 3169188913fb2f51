// What is written on a socket: requests, messages of upstream, answers and frames. It imports nothing of the rest of the feed.
export { AnswerFrame } from './answer-frame.ts'
export { type UpstreamMessage, dissect } from './dissect.ts'
export { frameOf, messageBytes, standaloneConcat } from './frame-of.ts'
export { alreadySubscribed, localAnswer, rateLimitError } from './local-answers.ts'
export { type FeedRequest, memoryOf, prefixOf } from './parse-request.ts'
export { RequestReader } from './request-reader.ts'
export { type FrameSequence, WriteBatch } from './write-batch.ts'
