import { defineConfig } from '@playwright/test'

const { CHROMIUM: executablePath, PAGE_URL = 'http://localhost:5173' } = process.env

export default defineConfig({
  testDir: 'tests',
  // A test that runs again orders again.
  retries: 0,
  use: { baseURL: PAGE_URL, launchOptions: { executablePath } },
  projects: [
    { name: 'login', testMatch: 'login.setup.ts' },
    { name: 'user', testMatch: 'user.spec.ts', dependencies: ['login'], use: { storageState: 'session.json' } },
    { name: 'visitor', testMatch: 'visitor.spec.ts' },
  ],
})
