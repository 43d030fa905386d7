/** What pi loads. */
import { extension } from "./extension.js";

export default extension();
