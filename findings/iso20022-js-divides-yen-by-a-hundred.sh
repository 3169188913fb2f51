#!/bin/sh
# iso20022.js 0.0.15 (createSWIFTCreditPaymentInitiation, which writes a pain.001 that a bank executes): a guess says that its whole
# amounts, of which 1000 US dollars become `<InstdAmt Ccy="USD">10`, are in the smallest unit of their currency, as with Stripe and in
# dinero.js on which it stands: 1000 is a thousand yen, and 1500 a dinar and a half of Kuwait. Or it says that the amount is in hundredths
# and a currency without them is refused. Yet each amount is divided by a hundred, whatever its currency: of a thousand yen ten are
# paid, and of 1.500 dinars 15, ten times as much. The type says no more than "the amount of the payment", and the file is valid, so that
# the bank finds nothing. Tests in dollars and euros pass. With yen, won or dinars an amount has to be put in hundredths.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts iso20022.js@0.0.15
cat >pay.mjs <<'JS'
import { ISO20022 } from 'iso20022.js'
const bank = { bic: 'CHASUS33', bankAddress: { country: 'US' } }
const payments = new ISO20022({ initiatingParty: { name: 'Payer', id: 'PAYER', account: { accountNumber: '1' }, agent: bank } })
const creditor = {
  name: 'Payee',
  account: { iban: 'DE89370400440532013000' },
  agent: { bic: 'DEUTDEFF' },
  address: { streetName: 'Street', townName: 'Town', postalCode: '1', country: 'DE' },
}
for (const [currency, amount] of [['USD', 1000], ['EUR', 1], ['JPY', 1000], ['KRW', 50000], ['KWD', 1500]]) {
  const payment = { type: 'swift', direction: 'credit', amount, currency, creditor, remittanceInformation: 'invoice' }
  const document = payments.createSWIFTCreditPaymentInitiation([payment]).serialize()
  console.log(`${amount}: ${document.match(/<InstdAmt.*?<\/InstdAmt>/)[0]}`)
}
JS
seen=$(node pay.mjs)
echo "$seen"
[ "$seen" = '1000: <InstdAmt Ccy="USD">10</InstdAmt>
1: <InstdAmt Ccy="EUR">0.01</InstdAmt>
1000: <InstdAmt Ccy="JPY">10</InstdAmt>
50000: <InstdAmt Ccy="KRW">500</InstdAmt>
1500: <InstdAmt Ccy="KWD">15</InstdAmt>' ]
