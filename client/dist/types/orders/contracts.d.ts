import type { Message } from '../core/sockets/socket-status.ts';
/** A contract on the account, as far as the trading service has described it. The names are those of its messages. */
export interface FoundContract {
    /** As it came: a text, if it is beyond 2^53 or no number. */
    readonly contract_id: number | string;
    readonly contract_type?: string;
    readonly underlying_symbol?: string;
    /** A text if a number would be another amount. */
    readonly buy_price?: number | string;
    readonly payout?: number | string;
    /** In seconds since 1970, by the clock of the trading service. */
    readonly purchase_time?: number;
    /** Set if it has ended, like `sell_price`. */
    readonly sell_time?: number;
    readonly sell_price?: number | string;
    readonly longcode?: string;
    readonly shortcode?: string;
}
/** The contracts that a message describes. */
export declare function contractsOf(message: Message): FoundContract[];
/** The ids of all contracts that a message names, as texts: no number is that of a neighbour, and words are ids, too. */
export declare function contractIdsIn(message: Message): string[];
/** The value if it is a text. */
export declare function text(value: unknown): string | undefined;
