export default ({ children }: LayoutProps<'/'>) => (
  <html lang="en">
    <body>{children}</body>
  </html>
)
