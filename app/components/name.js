// Keeps the reviewer's name in a cookie of this browser for a year. Draws nothing.
export default function (component) {
  const { name, cookie } = component.data;
  const attributes = "path=/; max-age=31536000; samesite=strict";
  document.cookie = `${cookie}=${encodeURIComponent(name)}; ${attributes}`;
}
