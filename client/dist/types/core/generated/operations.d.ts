/** Operations that change nothing, however often they are sent. Every other operation counts as a command. */
export declare const READS: RegExp;
/** The others that are known. A message that names one is a command, whatever else it names. */
export declare const COMMANDS: RegExp;
