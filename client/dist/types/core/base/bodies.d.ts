/** A response about payment agents or the nickname. */
export interface AgentsBody {
    data: unknown;
    errors?: RefusalReason[];
    metadata?: {
        [name: string]: unknown;
    };
}
/** Why the trading service refuses a call. It may send codes that nobody documents. */
export interface RefusalReason {
    status?: number;
    code?: string;
    message?: string;
    field?: string;
    [name: string]: unknown;
}
/** A response about accounts or contracts. */
export interface AccountList {
    data: Account[];
    meta?: Meta;
}
/** A trading account. */
export interface Account {
    balance?: Amount;
    [name: string]: unknown;
}
/** A number, or the same in a string. */
export type Amount = number | string;
/** About the call. */
export interface Meta {
    endpoint?: string;
    method?: string;
    timing?: number;
    [name: string]: unknown;
}
/** A response about accounts or contracts. */
export interface ExistingAccount {
    data: Account;
    meta?: Meta;
}
/** A response about accounts or contracts. */
export interface NewAccount {
    data: Account[];
    meta?: Meta;
}
/** A response about accounts or contracts. */
export interface OptionsBody {
    data: unknown;
    meta?: Meta;
}
/** A response about wallets. */
export interface WalletList {
    data: Wallet[];
    links?: {
        [name: string]: unknown;
    };
}
/** A wallet. */
export interface Wallet {
    balance?: Amount;
    [name: string]: unknown;
}
/** A response about wallets. */
export interface WalletsBody {
    data: unknown;
    links?: {
        [name: string]: unknown;
    };
}
/** A response about payment agents or the nickname. */
export interface AgentList {
    data: {
        [name: string]: unknown;
    }[];
    errors?: RefusalReason[];
    metadata?: {
        [name: string]: unknown;
    };
}
