import type { Message } from './socket-status.ts';
/** True unless the message certainly only reads. */
export declare function isCommand(message: Message): boolean;
