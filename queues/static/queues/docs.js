// Shows the OpenAPI document that the page names.
const place = document.getElementById("swagger-ui");
SwaggerUIBundle({ url: place.dataset.document, domNode: place, deepLinking: true });
