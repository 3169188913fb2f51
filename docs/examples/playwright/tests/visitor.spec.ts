import { expect, test } from '@playwright/test'

test('a visitor sees prices', async ({ page }) => {
  await page.goto('/')
  await expect(page.getByRole('link', { name: 'Log in' })).toBeVisible()
  await expect(page.locator('#R_100')).toHaveText(/^\d/)
})
