export {
  GetSessionResponse as Session,
  GetTradingV1OptionsAccountsResponse as AccountList,
  PostTradingV1OptionsAccountsBody as NewAccount,
  PostTradingV1OptionsAccountsResponse as ExistingAccount,
} from './zod-client.ts'
