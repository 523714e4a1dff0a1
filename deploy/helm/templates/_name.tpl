{{- /* The name of a part: the release's for servers, with the part behind it for others. */ -}}
{{- define "firnline.name" -}}
{{- $root := index . 0 }}{{ $part := index . 1 -}}
{{- if eq $part "server" }}{{ $root.Release.Name }}{{ else }}{{ printf "%s-%s" $root.Release.Name $part }}{{ end -}}
{{- end }}
