// Package face has no code of its own. The packages below it show findings and documents, and
// compute nothing: api has the structs of every JSON document, report writes text and JSON,
// export other formats, metrics those of Prometheus, ci what build systems read, and web
// serves the page.
package face
