import { test } from 'tap'
import { LEMONLDAP } from '../support/providers/lemonldap.ts'
import { checkProduct } from '../support/providers/product-checks.ts'

await test('LemonLDAP::NG', (t) => checkProduct(t, LEMONLDAP))
