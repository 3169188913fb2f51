import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

/** The overlays of deploy/kubernetes. */
export const OVERLAYS = ['production', 'laptop'] as const

/** A resource of Kubernetes. */
export interface Resource {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

/** The resources in a text of YAML documents. @throws Error when it is no YAML */
export function resourcesIn(text: string): Resource[] {
  // Kubernetes reads octal numbers as YAML 1.1 writes them.
  const documents = parseAllDocuments(text, { version: '1.1' })
  const errors = documents.flatMap((document) => document.errors)
  if (errors.length > 0) throw new Error(String(errors))
  return documents.map((document) => document.toJS() as Resource)
}

/** What kustomize makes of a folder in deploy/kubernetes. @throws Error without kubectl, or with what kustomize says against it */
export function rendered(folder: string): Resource[] {
  return renderedAt(fileURLToPath(new URL(`../../../deploy/kubernetes/${folder}`, import.meta.url)))
}

/** What kustomize makes of a folder. @throws Error without kubectl, or with what kustomize says against it */
export function renderedAt(path: string): Resource[] {
  return resourcesIn(execFileSync('kubectl', ['kustomize', path], { encoding: 'utf8', stdio: 'pipe' }))
}
