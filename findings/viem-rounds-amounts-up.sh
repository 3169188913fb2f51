#!/bin/sh
# viem 2.57.20 (parseUnits, which turns an amount that a user types into whole units of a currency's smallest part): a guess says that
# digits beyond the currency's decimals are refused, as by the function of the same name in ethers 6.17.0, or cut off, so that nobody
# sends more than was typed. Yet they are rounded, up as well, and nothing tells of it: 1.999 with two decimals is 2.00. Whoever has
# 1.99 and sends a computed 1.995 (a half, a price times a quantity) asks for more than there is, and 0.005 is 0.01. With 18 decimals it
# hardly ever shows; with the six of stablecoins and the two of cents it does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts viem@2.57.20 ethers@6.17.0
cat >units.mjs <<'JS'
import * as ethers from 'ethers'
import * as viem from 'viem'
const units = (library, amount) => {
  try {
    return library.parseUnits(amount, 2)
  } catch (error) {
    return error.code
  }
}
for (const amount of ['1.99', '1.999', '1.994', '0.995', '0.005', '-0.005']) {
  console.log(`${amount}: viem ${units(viem, amount)}, ethers ${units(ethers, amount)}`)
}
JS
seen=$(node units.mjs)
echo "$seen"
[ "$seen" = '1.99: viem 199, ethers 199
1.999: viem 200, ethers NUMERIC_FAULT
1.994: viem 199, ethers NUMERIC_FAULT
0.995: viem 100, ethers NUMERIC_FAULT
0.005: viem 1, ethers NUMERIC_FAULT
-0.005: viem -1, ethers NUMERIC_FAULT' ]
