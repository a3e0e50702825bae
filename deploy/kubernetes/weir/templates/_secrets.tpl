{{/* One file of a Secret: a dict of secret, key and file. */}}
{{- define "weir.secret" -}}
- secret:
    name: {{ .secret }}
    items: [{key: {{ .key }}, path: {{ .file }}}]
{{- end }}

{{/* A program's credentials for the brokers, and their authority. */}}
{{- define "weir.brokerSecrets" -}}
{{- $brokers := .root.Values.brokers }}
{{- $user := print $brokers.userPrefix .name }}
{{- with $brokers.authority.secret }}
{{ include "weir.secret" (dict "secret" . "key" $brokers.authority.key "file" "brokers_authority") }}
{{- end }}
{{- if eq $brokers.users "password" }}
{{ include "weir.secret" (dict "secret" $user "key" "password" "file" "brokers_password") }}
{{- else if eq $brokers.users "certificate" }}
{{ include "weir.secret" (dict "secret" $user "key" "user.crt" "file" "brokers_certificate") }}
{{ include "weir.secret" (dict "secret" $user "key" "user.key" "file" "brokers_key") }}
{{- end }}
{{- end }}

{{/* The address of a module's database. */}}
{{- define "weir.databaseSecrets" -}}
{{- $database := get .root.Values.databases .name }}
{{ include "weir.secret" (dict "secret" $database.secret "key" $database.key "file" "database_url") }}
{{- with $database.authority }}
{{ include "weir.secret" (dict "secret" . "key" "ca.crt" "file" "database_authority") }}
{{- end }}
{{- end }}

{{/* The files of a service under /run/secrets. They follow their Secrets while it runs. */}}
{{- define "weir.serviceSecrets" -}}
{{- $tls := ternary .root.Values.tls.gatewaySecret .root.Values.tls.secret (eq .name "gateway") }}
{{ include "weir.secret" (dict "secret" $tls "key" "tls.crt" "file" "tls_certificate") }}
{{ include "weir.secret" (dict "secret" $tls "key" "tls.key" "file" "tls_key") }}
{{- if eq .name "gateway" }}
{{ include "weir.secret" (dict "secret" .root.Values.tls.secret "key" "ca.crt" "file" "tls_authority") }}
{{- else }}
{{- include "weir.brokerSecrets" . }}
{{- include "weir.databaseSecrets" . }}
{{- $database := get .root.Values.databases .name }}
{{- with $database.replica }}
{{ include "weir.secret" (dict "secret" . "key" $database.key "file" "replica_database_url") }}
{{- end }}
{{- end }}
{{- $history := .root.Values.clickhouse }}
{{- if and $history.secret (eq .name "ingest") }}
{{ include "weir.secret" (dict "secret" $history.secret "key" $history.key "file" "clickhouse_url") }}
{{- with $history.readKey }}
{{ include "weir.secret" (dict "secret" $history.secret "key" . "file" "clickhouse_read_url") }}
{{- end }}
{{- end }}
{{- if eq .name "tenants" }}
{{ include "weir.secret" (dict "secret" .root.Values.tenants.secret "key" "operator_token" "file" "operator_token") }}
{{ include "weir.secret" (dict "secret" .root.Values.tenants.secret "key" "webhook_keys" "file" "webhook_keys") }}
{{- end }}
{{- end }}
