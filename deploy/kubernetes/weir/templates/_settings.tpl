{{/* How a program finds the brokers: a dict of root, name and environment, which grows. */}}
{{- define "weir.brokers" -}}
{{- $brokers := .root.Values.brokers }}
{{- if not $brokers.addresses }}{{ fail "brokers.addresses is empty: name at least one broker as host:port" }}{{ end }}
{{- $_ := set .environment "WEIR_BROKERS" (join "," $brokers.addresses) }}
{{- if $brokers.authority.secret }}
{{- $_ := set .environment "WEIR_BROKERS_CA_FILE" "/run/secrets/brokers_authority" }}
{{- end }}
{{- if eq $brokers.users "password" }}
{{- $_ := set .environment "WEIR_BROKERS_USER" (print $brokers.userPrefix .name) }}
{{- $_ := set .environment "WEIR_BROKERS_PASSWORD_FILE" "/run/secrets/brokers_password" }}
{{- else if eq $brokers.users "certificate" }}
{{- $_ := set .environment "WEIR_BROKERS_CERT_FILE" "/run/secrets/brokers_certificate" }}
{{- $_ := set .environment "WEIR_BROKERS_KEY_FILE" "/run/secrets/brokers_key" }}
{{- end }}
{{- end }}

{{/* How database servers are verified. PGSSL… are libpq's; an address overrides them. */}}
{{- define "weir.databaseAuthority" -}}
{{- if (get .root.Values.databases .name).authority }}
{{- $_ := set .environment "PGSSLMODE" "verify-full" }}
{{- $_ := set .environment "PGSSLROOTCERT" "/run/secrets/database_authority" }}
{{- end }}
{{- end }}

{{/* The settings of every service. */}}
{{- define "weir.serving" -}}
{{- $_ := set .environment "WEIR_LISTEN" ":8443" }}
{{- $_ := set .environment "WEIR_METRICS_LISTEN" ":9464" }}
{{- $_ := set .environment "WEIR_LOG_JSON" "true" }}
{{- $_ := set .environment "WEIR_LEAVE" "5s" }}
{{- $_ := set .environment "WEIR_DRAIN" (printf "%ds" (int .root.Values.drainSeconds)) }}
{{- $_ := set .environment "WEIR_TLS_CERT_FILE" "/run/secrets/tls_certificate" }}
{{- $_ := set .environment "WEIR_TLS_KEY_FILE" "/run/secrets/tls_key" }}
{{- with .root.Values.traces.endpoint }}
{{- $_ := set $.environment "OTEL_EXPORTER_OTLP_ENDPOINT" . }}
{{- end }}
{{- if eq .name "gateway" }}
{{- $_ := set .environment "WEIR_CA_FILE" "/run/secrets/tls_authority" }}
{{- with .root.Values.network.proxies }}
{{- $_ := set $.environment "WEIR_TRUSTED_PROXIES" (join "," .) }}
{{- end }}
{{- range $module := list "ingest" "ledger" "grouping" "tenants" }}
{{- $_ := set $.environment (printf "WEIR_%s_URL" (upper $module)) (printf "https://%s:8443" $module) }}
{{- end }}
{{- else }}
{{- $_ := set .environment "WEIR_TRUSTED_PROXIES" (join "," .root.Values.network.pods) }}
{{- if .root.Values.traces.endpoint }}
{{- $_ := set .environment "WEIR_TRACES_FROM_PROXIES" "true" }}
{{- end }}
{{- $_ := set .environment "WEIR_STATE_DIR" "/var/lib/weir" }}
{{- include "weir.brokers" . }}
{{- $_ := set .environment "WEIR_DATABASE_URL_FILE" "/run/secrets/database_url" }}
{{- if (get .root.Values.databases .name).replica }}
{{- $_ := set .environment "WEIR_REPLICA_DATABASE_URL_FILE" "/run/secrets/replica_database_url" }}
{{- end }}
{{- include "weir.databaseAuthority" . }}
{{- end }}
{{- $history := .root.Values.clickhouse }}
{{- if and $history.secret (eq .name "ingest") }}
{{- $_ := set .environment "WEIR_INGEST_CLICKHOUSE_URL_FILE" "/run/secrets/clickhouse_url" }}
{{- if $history.readKey }}
{{- $_ := set .environment "WEIR_INGEST_CLICKHOUSE_READ_URL_FILE" "/run/secrets/clickhouse_read_url" }}
{{- end }}
{{- with $history.cluster }}
{{- $_ := set $.environment "WEIR_INGEST_CLICKHOUSE_CLUSTER" . }}
{{- end }}
{{- with $history.quorum }}
{{- $_ := set $.environment "WEIR_INGEST_CLICKHOUSE_QUORUM" (toString .) }}
{{- end }}
{{- end }}
{{- if eq .name "tenants" }}
{{- $_ := set .environment "WEIR_OPERATOR_TOKEN_FILE" "/run/secrets/operator_token" }}
{{- $_ := set .environment "WEIR_WEBHOOK_KEYS_FILE" "/run/secrets/webhook_keys" }}
{{- end }}
{{- end }}

{{/* The variables of a container. */}}
{{- define "weir.variables" -}}
{{- range $variable, $value := . }}
- name: {{ $variable }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
