// The socket of a browser, and the upstream socket that it may have of its own.
export { Member, type MemberHost, type MemberLimits } from './member.ts'
export { OwnSocket } from './own-socket.ts'
