{{/* What every pod has: no rights, and no token. */}}
{{- define "weir.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- range $name, $value := omit .root.Values.scheduling "spread" }}
{{- with $value }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What every container has. */}}
{{- define "weir.container" -}}
image: {{ include "weir.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* A volume with a program's secrets. */}}
{{- define "weir.secretVolume" -}}
name: secrets
projected:
  defaultMode: 0440
  sources:
{{- . | nindent 4 }}
{{- end }}
