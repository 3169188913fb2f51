export {
  getSessionResponse as Session,
  getTradingV1OptionsAccountsResponse as AccountList,
  postTradingV1OptionsAccountsBody as NewAccount,
  postTradingV1OptionsAccountsResponse as ExistingAccount,
} from './zod-client.ts'
