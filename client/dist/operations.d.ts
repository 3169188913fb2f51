import type { Message } from './link.ts';
/** True unless the message certainly only reads. */
export declare function isCommand(message: Message): boolean;
