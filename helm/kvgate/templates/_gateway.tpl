{{/* gateway.yaml: the values' config, with the addresses and the drain time that the rest of the chart relies on. */}}
{{- define "kvgate.gateway" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not $config.auth -}}
{{- fail "config.auth is missing: without keys kvgate serves loopback only, and no probe or client reaches it" -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "replicas > 1: each pod keeps a ledger of its own, so together they would overbook the engines" -}}
{{- end -}}
{{- $admin := ternary "0.0.0.0:9090" "127.0.0.1:9090" .Values.admin.expose -}}
{{- $server := dict "listen" "0.0.0.0:8080" "admin" $admin "drain" (printf "%ds" (int .Values.drainSeconds)) -}}
{{- $_ := set $config "server" (merge $server (default dict $config.server)) -}}
{{- toYaml $config -}}
{{- end -}}
