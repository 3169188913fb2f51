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
    /** Its id, for paths and sockets. */
    account_id: string;
    /** `demo` or `real`. */
    account_type?: string;
    /** A code of ISO 4217. */
    currency?: string;
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
/** An account to open. One that exists is returned. */
export interface NewAccountRequest {
    /** A code of ISO 4217. */
    currency: string;
    /** The group of accounts. */
    group: string;
    account_type: 'demo' | 'real';
}
/** A response about accounts or contracts. */
export interface OptionsBody {
    data: unknown;
    meta?: Meta;
}
/** A contract, and the accounts to buy it for. */
export interface BulkPurchase {
    /** What to buy, as in a `proposal`. The trading service checks it. */
    contract_parameters: {
        [name: string]: unknown;
    };
    /** At most 100. An account that is there twice buys twice. */
    accounts: BulkPurchaseAccount[];
}
/** An account of a bulk purchase. */
export interface BulkPurchaseAccount {
    /** A Personal Access Token of its owner, with the scope `trade`. */
    token: string;
    account_id: string;
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
    data: Agent[];
    errors?: RefusalReason[];
    metadata?: {
        [name: string]: unknown;
    };
}
/** A payment agent. */
export interface Agent {
    [name: string]: unknown;
}
/** A response about payment agents or the nickname. */
export interface AgentBody {
    data: Agent;
    errors?: RefusalReason[];
    metadata?: {
        [name: string]: unknown;
    };
}
/** A transfer in its envelope. */
export interface TransferRequest {
    data: Transfer;
}
/** A transfer from a payment agent to a client. */
export interface Transfer {
    /** The nickname of the client. */
    to_nickname: string;
    /** A decimal number in a text. */
    amount: string;
    /** A code of ISO 4217. */
    currency: string;
    /** A text for the statement. */
    notes?: string;
    /** 1 to 128 letters, digits, `_` and `-`, new for each transfer: one that was used before is refused. */
    request_id?: string;
}
/** A withdrawal in its envelope. */
export interface WithdrawalRequest {
    data: Withdrawal;
}
/** A withdrawal of a client through a payment agent. */
export interface Withdrawal {
    /** The id of the payment agent. */
    agent_id: number | string;
    /** A decimal number in a text. */
    amount: string;
    /** A code of ISO 4217. */
    currency: string;
    /** The six digits that the client was sent. */
    verification_code: string;
    /** A text for the statement. */
    notes?: string;
    /** 1 to 128 letters, digits, `_` and `-`, new for each withdrawal: its status can be asked for by this id. */
    request_id?: string;
}
/** The withdrawal that a code is for, in its envelope. */
export interface VerificationCodeRequest {
    data: PlannedWithdrawal;
}
/** A withdrawal that needs a code. */
export interface PlannedWithdrawal {
    /** The id of the payment agent. */
    agent_id: number | string;
    /** A decimal number in a text. */
    amount: string;
    /** A code of ISO 4217. */
    currency: string;
}
