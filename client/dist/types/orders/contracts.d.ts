/** The members of a message, or of an object in one. */
export type Members = Readonly<Record<string, unknown>>;
/** A contract on the account, as far as the trading service has described it. The names are those of its messages. */
export interface FoundContract {
    readonly contract_id: number;
    readonly contract_type?: string;
    readonly underlying_symbol?: string;
    readonly buy_price?: number;
    readonly payout?: number;
    /** In seconds since 1970, by the clock of the trading service. */
    readonly purchase_time?: number;
    /** Set if it has ended, like `sell_price`. */
    readonly sell_time?: number;
    readonly sell_price?: number;
    readonly longcode?: string;
    readonly shortcode?: string;
}
/** The contracts that a message describes. */
export declare function contractsOf(message: Members): FoundContract[];
/** The value if it is a text. */
export declare function text(value: unknown): string | undefined;
