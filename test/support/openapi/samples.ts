/**
 * Messages in the shapes of the trading service, with invented values: as they were recorded, and, for the operations of which
 * none was, as the public schemas have them.
 */
export const SAMPLES: readonly { readonly operation: string; readonly message: Readonly<Record<string, unknown>> }[] = [
  {
    operation: 'ticks',
    message: {
      echo_req: { ticks: 'R_100', subscribe: 1, req_id: 1 },
      msg_type: 'tick',
      req_id: 1,
      subscription: { id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d' },
      tick: {
        ask: 613.55,
        bid: 613.31,
        epoch: 1760001200,
        id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d',
        pip_size: 2,
        quote: 613.43,
        symbol: 'R_100',
      },
    },
  },
  {
    operation: 'ticks',
    message: {
      echo_req: { ticks: 'R_50', subscribe: 1, req_id: 2 },
      error: { code: 'AlreadySubscribed', message: 'R_50 is subscribed already' },
      msg_type: 'tick',
      req_id: 2,
    },
  },
  {
    operation: 'ticks_history',
    message: {
      echo_req: {
        ticks_history: 'R_100',
        adjust_start_time: 1,
        count: 2,
        end: 'latest',
        start: 1,
        style: 'ticks',
        req_id: 3,
      },
      history: { prices: [613.4, 613.43], times: [1760001198, 1760001200] },
      msg_type: 'history',
      pip_size: 2,
      req_id: 3,
    },
  },
  {
    operation: 'ticks_history',
    message: {
      echo_req: { ticks_history: 'R_100', count: 1, end: 'latest', granularity: 60, style: 'candles', req_id: 4 },
      candles: [{ close: 613.43, epoch: 1760001180, high: 614, low: 612.9, open: 613 }],
      msg_type: 'candles',
      pip_size: 2,
      req_id: 4,
    },
  },
  {
    operation: 'proposal',
    message: {
      echo_req: {
        proposal: 1,
        amount: 10,
        basis: 'stake',
        contract_type: 'CALL',
        currency: 'USD',
        duration: 5,
        duration_unit: 'm',
        underlying_symbol: 'R_100',
        subscribe: 1,
        req_id: 5,
      },
      msg_type: 'proposal',
      proposal: {
        ask_price: 10,
        date_expiry: 1760001500,
        date_start: 1760001200,
        id: '9b1f6f0e-1f6c-4c58-8d3c-3f9ad1b0e7c2',
        longcode: 'Pays if the index rises',
        payout: 18.18,
        spot: 613.43,
        spot_time: 1760001200,
        validation_params: { payout: { max: '10000.00' }, stake: { min: '0.35' } },
      },
      req_id: 5,
      subscription: { id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d' },
    },
  },
  {
    operation: 'proposal',
    message: {
      echo_req: { proposal: 1, contract_type: 'CALL', currency: 'USD', underlying_symbol: 'NONE', req_id: 6 },
      error: { code: 'InputValidationFailed', details: {}, message: 'Not allowed' },
      msg_type: 'proposal',
      req_id: 6,
    },
  },
  {
    operation: 'balance',
    message: {
      balance: { balance: 10000, currency: 'USD', id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d', loginid: 'DOT90004580' },
      echo_req: { balance: 1, req_id: 7, subscribe: 1 },
      msg_type: 'balance',
      req_id: 7,
      subscription: { id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d' },
    },
  },
  {
    operation: 'buy',
    message: {
      buy: {
        balance_after: 9990,
        buy_price: 10,
        contract_id: 123456789,
        longcode: 'Pays if the index rises',
        payout: 18.18,
        purchase_time: 1760001201,
        shortcode: 'CALL_R_100_18.18_1760001201_1760001501_S0P_0',
        start_time: 1760001201,
        transaction_id: 987654321,
      },
      echo_req: { buy: '9b1f6f0e-1f6c-4c58-8d3c-3f9ad1b0e7c2', price: 10, req_id: 8 },
      msg_type: 'buy',
      req_id: 8,
    },
  },
  {
    operation: 'transaction',
    message: {
      echo_req: { req_id: 9, subscribe: 1, transaction: 1 },
      msg_type: 'transaction',
      req_id: 9,
      subscription: { id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d' },
      transaction: {
        action: 'buy',
        amount: -10,
        balance: 9990,
        contract_id: 123456789,
        currency: 'USD',
        id: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d',
        longcode: 'Pays if the index rises',
        transaction_id: 987654321,
        transaction_time: 1760001201,
        underlying_symbol: 'R_100',
      },
    },
  },
  {
    operation: 'forget',
    message: {
      echo_req: { forget: '5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d', req_id: 10 },
      forget: 1,
      msg_type: 'forget',
      req_id: 10,
    },
  },
  {
    operation: 'forget_all',
    message: {
      echo_req: { forget_all: ['ticks', 'candles'], req_id: 11 },
      forget_all: ['5d0e2c8a-4b57-4f0e-9a11-0c2f7f1e6b3d'],
      msg_type: 'forget_all',
      req_id: 11,
    },
  },
  { operation: 'ping', message: { echo_req: { ping: 1, req_id: 12 }, msg_type: 'ping', ping: 'pong', req_id: 12 } },
  {
    operation: 'proposal_open_contract',
    message: {
      echo_req: { proposal_open_contract: 1, contract_id: 123456789, req_id: 13 },
      msg_type: 'proposal_open_contract',
      proposal_open_contract: {
        bid_price: '9.61',
        buy_price: '10.00',
        contract_id: 123456789,
        currency: 'USD',
        entry_spot: null,
        exit_spot: null,
        is_sold: 0,
        profit: '-0.39',
        sell_price: null,
        sell_time: null,
        status: 'open',
      },
      req_id: 13,
    },
  },
  {
    operation: 'statement',
    message: {
      echo_req: { statement: 1, limit: 1, req_id: 14 },
      msg_type: 'statement',
      req_id: 14,
      statement: {
        count: 1,
        transactions: [
          {
            action_type: 'deposit',
            amount: 100,
            balance_after: 100,
            contract_id: null,
            payout: null,
            reference_id: null,
            shortcode: null,
            transaction_id: 1,
            transaction_time: 1760000000,
          },
        ],
      },
    },
  },
  {
    operation: 'profit_table',
    message: {
      echo_req: { profit_table: 1, limit: 1, sort: 'ASC', req_id: 15 },
      msg_type: 'profit_table',
      profit_table: {
        count: 1,
        transactions: [
          {
            buy_price: 10,
            contract_id: 123456789,
            payout: 18.18,
            sell_price: 0,
            sell_time: null,
            shortcode: 'CALL',
            transaction_id: 987654321,
          },
        ],
      },
      req_id: 15,
    },
  },
  {
    operation: 'contract_update',
    message: {
      contract_update: {
        stop_loss: { display_name: 'Stop loss', order_amount: -5, order_date: 1760001300, value: null },
      },
      echo_req: {
        contract_update: 1,
        contract_id: 123456789,
        limit_order: { stop_loss: 5, take_profit: null },
        req_id: 16,
      },
      msg_type: 'contract_update',
      req_id: 16,
    },
  },
  {
    operation: 'cancel',
    message: {
      cancel: {
        balance_after: 10000,
        contract_id: 123456789,
        reference_id: 987654321,
        sold_for: 10,
        transaction_id: 987654322,
      },
      echo_req: { cancel: 123456789, req_id: 17 },
      msg_type: 'cancel',
      req_id: 17,
    },
  },
]
