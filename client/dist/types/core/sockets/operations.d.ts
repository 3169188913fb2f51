import type { Message } from './socket-status.ts';
/** False if the message certainly changes nothing. */
export declare function isCommand(message: Message): boolean;
