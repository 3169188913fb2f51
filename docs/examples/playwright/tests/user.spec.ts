import { expect, test } from '@playwright/test'

const ACCOUNTS = '/api/trading/v1/options/accounts'

test('the user is logged in, and calls the API', async ({ page, request }) => {
  const response = await request.get(ACCOUNTS, { headers: { 'X-CSRF': '1' } })
  await expect(response).toBeOK()
  const { data } = await response.json()
  await page.goto('/')
  await expect(page.getByLabel('Account')).toHaveValue(data[0].account_id)
})

test('after a purchase whose answer is lost, the page knows that it was made', async ({ page }) => {
  let sent = 0
  await page.routeWebSocket('**/ws/trading/*', (socket) => {
    const server = socket.connectToServer()
    server.onMessage((message) =>
      String(message).includes('"msg_type":"buy"') ? socket.close({ code: 1012 }) : socket.send(message),
    )
    socket.onMessage((message) => {
      if (String(message).includes('"buy"')) sent++
      server.send(message)
    })
  })
  await page.goto('/')
  await expect(page.locator('#balance')).toHaveText(/USD/)
  await page.getByRole('button', { name: 'Get a price' }).click()
  await page.getByRole('button', { name: 'Buy' }).click()
  await expect(page.getByText('You have bought a contract.')).toBeVisible()
  expect(sent).toBe(1)
})
