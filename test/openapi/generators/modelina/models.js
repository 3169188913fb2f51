import { readFile, writeFile } from 'node:fs/promises'
import { TypeScriptGenerator } from '@asyncapi/modelina'

const document = JSON.parse(await readFile('asyncapi.json', 'utf8'))
// Otherwise members have other names than in messages.
const generator = new TypeScriptGenerator({ modelType: 'interface', enumType: 'union', rawPropertyNames: true })
for (const { modelName, result } of await generator.generateCompleteModels(document, { exportType: 'named' })) {
  await writeFile(`${modelName}.ts`, result)
}
