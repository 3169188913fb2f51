import { test } from '@playwright/test'

test('log in', async ({ page }) => {
  await page.goto('/')
  await page.getByRole('link', { name: 'Log in' }).click()
  await page.getByLabel('E-mail').fill('demo@example.test')
  await page.getByLabel('Password').fill('any')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Log out' }).waitFor()
  // Whoever has this file is logged in: list it in .gitignore.
  await page.context().storageState({ path: 'session.json' })
})
