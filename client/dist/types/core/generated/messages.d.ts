/** The operations of sockets that are described, with their requests and answers. */
export interface Operations {
    ticks: {
        request: TicksRequest;
        answer: TicksAnswer;
    };
    ticks_history: {
        request: TicksHistoryRequest;
        answer: TicksHistoryAnswer;
    };
    active_symbols: {
        request: ActiveSymbolsRequest;
        answer: ActiveSymbolsAnswer;
    };
    contracts_for: {
        request: ContractsForRequest;
        answer: ContractsForAnswer;
    };
    contracts_list: {
        request: ContractsListRequest;
        answer: ContractsListAnswer;
    };
    trading_times: {
        request: TradingTimesRequest;
        answer: TradingTimesAnswer;
    };
    time: {
        request: TimeRequest;
        answer: TimeAnswer;
    };
    ping: {
        request: PingRequest;
        answer: PingAnswer;
    };
    proposal: {
        request: ProposalRequest;
        answer: ProposalAnswer;
    };
    forget: {
        request: ForgetRequest;
        answer: ForgetAnswer;
    };
    forget_all: {
        request: ForgetAllRequest;
        answer: ForgetAllAnswer;
    };
    buy: {
        request: BuyRequest;
        answer: BuyAnswer;
    };
    sell: {
        request: SellRequest;
        answer: SellAnswer;
    };
    cancel: {
        request: CancelRequest;
        answer: CancelAnswer;
    };
    contract_update: {
        request: ContractUpdateRequest;
        answer: ContractUpdateAnswer;
    };
    proposal_open_contract: {
        request: ProposalOpenContractRequest;
        answer: ProposalOpenContractAnswer;
    };
    portfolio: {
        request: PortfolioRequest;
        answer: PortfolioAnswer;
    };
    profit_table: {
        request: ProfitTableRequest;
        answer: ProfitTableAnswer;
    };
    statement: {
        request: StatementRequest;
        answer: StatementAnswer;
    };
    transaction: {
        request: TransactionRequest;
        answer: TransactionAnswer;
    };
    balance: {
        request: BalanceRequest;
        answer: BalanceAnswer;
    };
}
/** The latest price of a symbol or of several, and with `subscribe` every later one. */
export interface TicksRequest {
    /** A symbol, or a list of symbols. */
    ticks: string | string[];
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** 1 asks for a stream, which goes on until it is forgotten or the connection ends. */
export type Subscribe = 0 | 1;
/** A number of your choice. The answer and every message of its stream carry it. */
export type RequestId = number;
/** Anything of your choice. It comes back in `echo_req`. */
export interface Passthrough {
    [name: string]: unknown;
}
/** A price. */
export interface TicksAnswer extends Answer {
    tick: Tick;
}
/** What every message of the trading service has. */
export interface Answer {
    /** What the message is about. */
    msg_type: string;
    /** The request. */
    echo_req?: {
        [name: string]: unknown;
    };
    req_id?: RequestId;
    passthrough?: Passthrough;
    subscription?: SubscriptionId;
}
/** Only in the messages of a stream. The id belongs to the connection. */
export interface SubscriptionId {
    id: string;
}
/** A price of a symbol. */
export interface Tick {
    ask?: number;
    bid?: number;
    epoch: Epoch;
    /** The id of the subscription. */
    id?: string;
    /** How many digits follow the decimal point. */
    pip_size?: number;
    quote: number;
    symbol?: string;
}
/** Seconds since 1970. */
export type Epoch = number;
/** Past prices or candles of a symbol, and with `subscribe` every later one. */
export interface TicksHistoryRequest {
    /** A symbol. */
    ticks_history: string;
    /** The end of the period, `latest` or seconds since 1970. */
    end: string;
    /** The beginning of the period, in seconds since 1970. */
    start?: number;
    /** The newest so many at most. */
    count?: number;
    style?: HistoryStyle;
    granularity?: Granularity;
    adjust_start_time?: AdjustStartTime;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** Prices or candles. Prices unless stated. */
export type HistoryStyle = 'ticks' | 'candles';
/** The length of a candle in seconds. 60 unless stated. */
export type Granularity = 60 | 120 | 180 | 300 | 600 | 900 | 1800 | 3600 | 7200 | 14400 | 28800 | 86400;
/** 1 asks for an earlier period if the market was closed. */
export type AdjustStartTime = 1;
/** First `history` or `candles`, by the `style` of the request. Then, of a stream, `tick` or `ohlc`. */
export interface TicksHistoryAnswer extends Answer {
    history?: TickHistory;
    /** How many digits follow the decimal point. */
    pip_size?: number;
    candles?: Candle[];
    tick?: Tick;
    ohlc?: Ohlc;
}
/** Past prices, oldest first. */
export interface TickHistory {
    prices: number[];
    /** One for each price. */
    times: Epoch[];
}
/** The prices of a period. */
export interface Candle {
    epoch: Epoch;
    open: number;
    high: number;
    low: number;
    close: number;
}
/** The newest candle of a stream as it is now. */
export interface Ohlc {
    /** The id of the subscription. */
    id?: string;
    symbol?: string;
    epoch?: Epoch;
    /** The beginning of the candle, in seconds since 1970. */
    open_time: number;
    /** The length of the candle in seconds. */
    granularity?: number;
    open: Price;
    high: Price;
    low: Price;
    close: Price;
    pip_size?: number;
}
/** A price of the market, as a number or as a text of digits. */
export type Price = number | string;
/** The symbols that can be traded. */
export interface ActiveSymbolsRequest {
    active_symbols: SymbolDetail;
    /** Only symbols for one of these types of contract. */
    contract_type?: string[];
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** How much is said about each symbol. */
export type SymbolDetail = 'brief' | 'full';
/** The symbols that can be traded. */
export interface ActiveSymbolsAnswer extends Answer {
    active_symbols: ActiveSymbol[];
}
/** A symbol that can be traded. */
export interface ActiveSymbol {
    underlying_symbol: string;
    /** For people. */
    underlying_symbol_name?: string;
    underlying_symbol_type?: string;
    market?: string;
    submarket?: string;
    subgroup?: string;
    /** The smallest change of the price, such as 0.01. */
    pip_size?: number;
    exchange_is_open?: Flag;
    is_trading_suspended?: Flag;
    trade_count?: number;
}
/** 1 means yes. */
export type Flag = 0 | 1;
/** The contracts that are on offer for a symbol. */
export interface ContractsForRequest {
    /** A symbol. */
    contracts_for: string;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The contracts that are on offer for a symbol. */
export interface ContractsForAnswer extends Answer {
    contracts_for: ContractsOnOffer;
}
/** The contracts that are on offer for a symbol. */
export interface ContractsOnOffer {
    available: ContractOnOffer[];
    hit_count?: number;
}
/** A type of contract that is on offer. */
export interface ContractOnOffer {
    contract_category?: string;
    contract_type: string;
    underlying_symbol?: string;
    market?: string;
    submarket?: string;
    sentiment?: string;
    expiry_type?: string;
    min_contract_duration?: string;
    max_contract_duration?: string;
    /** How many barriers the contract has. */
    barriers?: number;
    barrier?: string | null;
    high_barrier?: string | null;
    low_barrier?: string | null;
    barrier_choices?: unknown[];
    payout_choices?: unknown[];
    multiplier_range?: unknown[];
    growth_rate_range?: unknown[];
    cancellation_range?: unknown[];
    last_digit_range?: unknown[];
    default_stake?: number;
    min_stake?: number | null;
    max_stake?: number | null;
    payout_limit?: number;
}
/** The types of contract that there are. */
export interface ContractsListRequest {
    contracts_list: One;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** Always 1. */
export type One = 1;
/** The types of contract that there are. */
export interface ContractsListAnswer extends Answer {
    contracts_list: ContractCategory[];
}
/** A category of contracts. */
export interface ContractCategory {
    contract_category: string;
    contract_types: string[];
    /** For people. */
    display_name?: string;
}
/** When the markets are open on a day. */
export interface TradingTimesRequest {
    /** A day, YYYY-MM-DD, or `today`. */
    trading_times: string;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** When the markets are open on a day. */
export interface TradingTimesAnswer extends Answer {
    trading_times: TradingTimes;
}
/** The markets of a day. */
export interface TradingTimes {
    markets: Market[];
}
/** A market. */
export interface Market {
    name: string;
    submarkets?: Submarket[];
}
/** A part of a market. */
export interface Submarket {
    name: string;
    symbols: TradingDay[];
}
/** When a symbol can be traded on the day. */
export interface TradingDay {
    /** For people. */
    name?: string;
    underlying_symbol: string;
    /** When the market opens, closes and settles. */
    times?: {
        [name: string]: unknown;
    };
    trading_days?: string[];
    events?: unknown[];
}
/** The clock of the trading service. */
export interface TimeRequest {
    time: One;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The clock of the trading service. */
export interface TimeAnswer extends Answer {
    time: Epoch;
}
/** Keeps a connection open. */
export interface PingRequest {
    ping: One;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The answer to a ping. */
export interface PingAnswer extends Answer {
    ping: string;
}
/** The price of a contract, and with `subscribe` every change of it. */
export interface ProposalRequest extends ContractTerms {
    proposal: One;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** What a contract is about. */
export interface ContractTerms {
    /** The service adds types from time to time. */
    contract_type: string;
    currency: string;
    underlying_symbol: string;
    /** The stake or the payout, by `basis`. */
    amount?: number;
    basis?: AmountBasis;
    /** How long the contract runs. */
    duration?: number;
    duration_unit?: DurationUnit;
    date_expiry?: Epoch;
    barrier?: string;
    barrier2?: string;
    selected_tick?: number;
    multiplier?: number;
    growth_rate?: number;
    payout_per_point?: number;
    /** For how long the contract can be cancelled, such as 60m. */
    cancellation?: string;
    limit_order?: LimitOrder;
}
/** What `amount` is. */
export type AmountBasis = 'payout' | 'stake';
/** Ticks, seconds, minutes, hours or days. */
export type DurationUnit = 't' | 's' | 'm' | 'h' | 'd';
/** At which loss or profit the contract is sold. */
export interface LimitOrder {
    stop_loss?: number;
    take_profit?: number;
}
/** The price of a contract. */
export interface ProposalAnswer extends Answer {
    proposal: Proposal;
}
/** A contract that can be bought. */
export interface Proposal {
    /** What `buy` names. */
    id: string;
    /** What the contract costs. */
    ask_price: number;
    payout: number;
    /** The price of the symbol. */
    spot: number;
    spot_time: Epoch;
    date_start: Epoch;
    date_expiry?: Epoch;
    /** The contract in words, for people. */
    longcode: string;
    barrier_choices?: unknown[];
    barrier_spot_distance?: string;
    cancellation?: {
        [name: string]: unknown;
    };
    commission?: number | string | null;
    contract_details?: {
        [name: string]: unknown;
    };
    display_number_of_contracts?: string;
    limit_order?: {
        [name: string]: unknown;
    };
    min_stake?: number;
    max_stake?: number;
    multiplier?: number;
    payout_choices?: string[];
    /** What the service accepts. */
    validation_params?: {
        [name: string]: unknown;
    };
}
/** Ends a stream. */
export interface ForgetRequest {
    /** The id of its subscription. */
    forget: string;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** Whether there was such a stream on the connection. */
export interface ForgetAnswer extends Answer {
    forget: Flag;
}
/** Ends all streams of a kind or of several on the connection. */
export interface ForgetAllRequest {
    forget_all: StreamType | StreamType[];
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** A kind of stream. */
export type StreamType = 'balance' | 'candles' | 'proposal' | 'proposal_open_contract' | 'ticks' | 'transaction';
/** The ids of the streams that have ended. */
export interface ForgetAllAnswer extends Answer {
    forget_all: string[];
}
/** Buys a contract. It is a command - send it once. */
export interface BuyRequest {
    /** The id of a proposal; or 1, with `parameters`. */
    buy: string | number;
    /** The most that the contract may cost. */
    price: number;
    parameters?: ContractTerms;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The contract that was bought. */
export interface BuyAnswer extends Answer {
    buy: Purchase;
}
/** A contract that was bought. */
export interface Purchase {
    contract_id: number | string;
    transaction_id: number | string;
    buy_price: number;
    balance_after: number;
    payout: number;
    /** The contract in words, for people. */
    longcode: string;
    shortcode: string;
    purchase_time: Epoch;
    start_time: Epoch;
}
/** Sells a contract before it ends. It is a command - send it once. */
export interface SellRequest {
    /** The id of the contract. */
    sell: number | string;
    /** The least that it must bring; 0 for any price. */
    price: number;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The sale. */
export interface SellAnswer extends Answer {
    sell: Sale;
}
/** A contract that was sold or cancelled. */
export interface Sale {
    contract_id?: number | string;
    /** The transaction of the purchase. */
    reference_id?: number | string;
    transaction_id?: number | string;
    sold_for?: number;
    balance_after?: number;
}
/** Cancels a contract that has a cancellation. It is a command - send it once. */
export interface CancelRequest {
    /** The id of the contract. */
    cancel: number | string;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The cancellation. */
export interface CancelAnswer extends Answer {
    cancel: Sale;
}
/** Changes the limits of a contract. It is a command - send it once. */
export interface ContractUpdateRequest {
    contract_update: One;
    contract_id: number | string;
    limit_order: LimitChange;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** At which loss or profit the contract is sold from now on. Null removes a limit. */
export interface LimitChange {
    stop_loss?: number | null;
    take_profit?: number | null;
}
/** The limits as they are now. */
export interface ContractUpdateAnswer extends Answer {
    contract_update: ContractLimits;
}
/** The limits of a contract. */
export interface ContractLimits {
    stop_loss?: ContractLimit;
    take_profit?: ContractLimit;
}
/** A limit of a contract. */
export interface ContractLimit {
    display_name?: string;
    order_amount?: number | null;
    order_date?: Epoch;
    value?: string | null;
}
/** A contract of the account, or all open ones, and with `subscribe` every change. */
export interface ProposalOpenContractRequest {
    proposal_open_contract: One;
    /** Without it, all open contracts. */
    contract_id?: number | string;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** A contract as it is now. */
export interface ProposalOpenContractAnswer extends Answer {
    proposal_open_contract: OpenContract;
}
/** A contract of the account. An object without members means that none is open. */
export interface OpenContract {
    account_id?: number | string;
    contract_id?: number | string;
    contract_type?: string;
    underlying_symbol?: string;
    currency?: string;
    status?: ContractStatus | null;
    /** The contract in words, for people. */
    longcode?: string;
    shortcode?: string;
    buy_price?: Money;
    bid_price?: Money;
    payout?: Money;
    profit?: Money;
    profit_percentage?: number;
    sell_price?: number | string | null;
    sell_time?: number | null;
    commission?: number | string | null;
    current_spot?: Price;
    current_spot_time?: Epoch;
    entry_spot?: number | string | null;
    entry_spot_time?: number | null;
    exit_spot?: number | string | null;
    exit_spot_time?: number | null;
    date_start?: Epoch;
    date_expiry?: Epoch;
    date_settlement?: Epoch;
    expiry_time?: Epoch;
    purchase_time?: Epoch;
    barrier?: string | null;
    high_barrier?: string;
    low_barrier?: string;
    barrier_count?: number;
    /** The id of the subscription. */
    id?: string;
    is_expired?: Flag;
    is_sold?: Flag;
    is_settleable?: Flag;
    is_valid_to_cancel?: Flag;
    is_valid_to_sell?: Flag;
    limit_order?: {
        [name: string]: unknown;
    };
    multiplier?: number;
    growth_rate?: number;
    tick_count?: number;
    tick_passed?: number;
    tick_stream?: ContractTick[];
    transaction_ids?: ContractTransactions;
    /** Why it cannot be sold, for people. */
    validation_error?: string;
    validation_error_code?: string;
}
/** What has become of a contract. */
export type ContractStatus = 'open' | 'sold' | 'won' | 'lost' | 'cancelled';
/** An amount of money, as a number or as a text of digits. */
export type Money = number | string;
/** A price that counts for a contract. */
export interface ContractTick {
    epoch?: Epoch;
    tick?: number | null;
    tick_display_value?: string | null;
}
/** The transactions of a contract. */
export interface ContractTransactions {
    buy?: number | string;
    sell?: number | string;
}
/** The open contracts of the account. */
export interface PortfolioRequest {
    portfolio: One;
    contract_type?: string[];
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The open contracts of the account. */
export interface PortfolioAnswer extends Answer {
    portfolio: Portfolio;
}
/** The open contracts of the account. */
export interface Portfolio {
    contracts: PortfolioContract[];
}
/** An open contract. */
export interface PortfolioContract {
    contract_id?: number | string;
    contract_type?: string;
    underlying_symbol?: string;
    currency?: string;
    buy_price?: number;
    payout?: number;
    /** The contract in words, for people. */
    longcode?: string;
    shortcode?: string;
    transaction_id?: number | string;
    date_start?: Epoch;
    expiry_time?: Epoch;
    purchase_time?: Epoch;
}
/** The contracts of the account that have ended. */
export interface ProfitTableRequest {
    profit_table: One;
    contract_type?: string[];
    /** A day, YYYY-MM-DD, or seconds since 1970. */
    date_from?: string;
    /** A day, YYYY-MM-DD, or seconds since 1970. */
    date_to?: string;
    description?: Flag;
    /** 500 at most. 50 unless stated. */
    limit?: number;
    offset?: number;
    sort?: SortOrder;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** Ascending or descending. */
export type SortOrder = 'ASC' | 'DESC';
/** The contracts of the account that have ended. */
export interface ProfitTableAnswer extends Answer {
    profit_table: ProfitTable;
}
/** The contracts of the account that have ended. */
export interface ProfitTable {
    count?: number;
    transactions?: EndedContract[];
}
/** A contract that has ended. */
export interface EndedContract {
    contract_id?: number | string | null;
    contract_type?: string;
    underlying_symbol?: string;
    buy_price?: number;
    sell_price?: number;
    payout?: number;
    purchase_time?: Epoch;
    sell_time?: number | null;
    /** The contract in words, with `description`. */
    longcode?: string;
    shortcode?: string;
    transaction_id?: number | string;
    duration_type?: string | null;
    multiplier?: string;
    growth_rate?: string;
}
/** The transactions of the account. */
export interface StatementRequest {
    statement: One;
    action_type?: ActionType;
    date_from?: Epoch;
    date_to?: Epoch;
    description?: Flag;
    /** 999 at most. 100 unless stated. */
    limit?: number;
    offset?: number;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** What a transaction did. */
export type ActionType = 'buy' | 'sell' | 'deposit' | 'withdrawal';
/** The transactions of the account. */
export interface StatementAnswer extends Answer {
    statement: Statement;
}
/** The transactions of the account. */
export interface Statement {
    count?: number;
    transactions?: StatementLine[];
}
/** A transaction of the account. */
export interface StatementLine {
    action_type?: ActionType;
    amount?: number;
    balance_after?: number;
    contract_id?: number | string | null;
    /** The contract in words, with `description`. */
    longcode?: string;
    shortcode?: string | null;
    payout?: number | null;
    purchase_time?: Epoch;
    reference_id?: number | string | null;
    transaction_id?: number | string;
    transaction_time?: Epoch;
}
/** Every transaction of the account from now on. */
export interface TransactionRequest {
    transaction: One;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** A transaction of the account. The first message of the stream has none. */
export interface TransactionAnswer extends Answer {
    transaction: Transaction;
}
/** A transaction of the account. */
export interface Transaction {
    action?: ActionType;
    amount?: number;
    balance?: number;
    contract_id?: number | string | null;
    currency?: string;
    /** The id of the subscription. */
    id?: string;
    /** The contract in words, for people. */
    longcode?: string;
    underlying_symbol?: string;
    date_expiry?: Epoch;
    purchase_time?: Epoch;
    transaction_id?: number | string;
    transaction_time?: Epoch;
}
/** The balance of the account, and with `subscribe` every change of it. */
export interface BalanceRequest {
    balance: One;
    subscribe?: Subscribe;
    req_id?: RequestId;
    passthrough?: Passthrough;
}
/** The balance of the account. */
export interface BalanceAnswer extends Answer {
    balance: Balance;
}
/** The balance of an account. */
export interface Balance {
    balance: number;
    currency: string;
    /** The id of the subscription. */
    id?: string;
    /** The account. */
    loginid?: string;
}
