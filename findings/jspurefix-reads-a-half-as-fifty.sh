#!/bin/sh
# jspurefix 5.11.4, a FIX engine: a guess says that a price without a digit before its point, such as 270=.5 or 270=-.25, is 0.5 and
# -0.25, since a float of FIX is a sequence of digits with an optional point, an xs:decimal in its XML, and QuickFIX/J and QuickFIX/Go
# take it so; or that the message is refused. Yet it is 50 and -250, without an error: a point in the first place counts as no point at
# all. Senders that take their prices as text from a database do leave the zero out, as Oracle's TO_CHAR does. All prices from 1 on are
# right, so that tests with shares and currencies pass, and options, rates and spreads go wrong.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts jspurefix@5.11.4 reflect-metadata@0.2.2
cat >prices.mjs <<'JS'
import 'reflect-metadata'
import jspurefix from 'jspurefix'
const { AsciiParser, DITokens, SessionContainer } = jspurefix
const container = new SessionContainer()
container.registerGlobal('error')
const application = { type: 'initiator', name: 'page', protocol: 'ascii', dictionary: 'qf44' }
const session = await container.makeSystem({ application, BeginString: 'FIX.4.4' })

/** A market data refresh (35=X) of one bid, with its length and checksum. */
function refresh(price) {
  const fields = ['35=X', '49=VENUE', '56=PAGE', '34=2', '52=20260301-12:00:00.000', '268=1', '279=0', '269=0', '55=EUR/USD', `270=${price}`, '271=1']
  const body = `${fields.join('\u0001')}\u0001`
  const message = `8=FIX.4.4\u00019=${body.length}\u0001${body}`
  const sum = Buffer.from(message).reduce((all, byte) => all + byte, 0) % 256
  return `${message}10=${String(sum).padStart(3, '0')}\u0001`
}
for (const price of ['1.5', '0.5', '.5', '-0.25', '-.25', '0.05', '.05']) {
  const parser = new AsciiParser(session.resolve(DITokens.IJsFixConfig), null, session.resolve(DITokens.ParseBuffer))
  parser.on('msg', (type, view) => console.log(`270=${price} is ${view.getTyped('MDEntryPx')}`))
  parser.on('error', (error) => console.log(`270=${price} is refused: ${error.message}`))
  parser.parseText(refresh(price))
}
JS
seen=$(node prices.mjs)
echo "$seen"
[ "$seen" = '270=1.5 is 1.5
270=0.5 is 0.5
270=.5 is 50
270=-0.25 is -0.25
270=-.25 is -250
270=0.05 is 0.05
270=.05 is 50' ]
